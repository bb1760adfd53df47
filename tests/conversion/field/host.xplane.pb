
	/host:CPU
python
/host:metadata